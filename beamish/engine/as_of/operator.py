from beamish.engine.operator import Operator


class AsOfOperator(Operator):
    def __init__(self, plan):
        self.plan = plan
