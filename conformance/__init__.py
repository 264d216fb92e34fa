"""A conformance suite of windowing semantics: cases as JSON lines, recorded answers of several engines, and a runner of adapters."""
