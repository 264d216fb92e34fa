"""Texts of an attacker, and what refuses them."""

HOSTILE = [
    "__import__('os').system('touch {file}')",
    "'); DROP TABLE panes; --",
    "${{jndi:ldap://localhost/a}}",
    "{{0.__class__.__mro__}} %s %(x)s \\N{{DIGIT ONE}}",
    "`id` $(touch {file}) ; touch {file}",
    '"; import os; os.system("touch {file}") #',
    "c__builtin__\neval\n(V1\ntR.",
    "a\x00b\u202e\ud7ff\U0010ffff",
]


def fails(a, b):
    raise ValueError(f"4111-1111 {a} {b}")
