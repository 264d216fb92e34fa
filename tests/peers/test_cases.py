from hypothesis import strategies as st

from peers.cases import drawn

NUMBERS = st.integers().map(lambda n: {"n": n % 120})


def test_cases_are_different_and_the_same_for_a_seed():
    cases = list(drawn(NUMBERS, 100, number=1))
    assert sorted({case["n"] for case in cases}) == sorted(case["n"] for case in cases)
    assert len(cases) == 100
    assert cases == list(drawn(NUMBERS, 100, number=1))
