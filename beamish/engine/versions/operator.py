from beamish.engine.operator import Operator


class VersionsOperator(Operator):
    def __init__(self, plan):
        self.plan = plan
