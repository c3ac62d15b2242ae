.PHONY: demo test check docs bench
demo: ; ./scripts/demo
test: ; ./scripts/test
check: ; ./scripts/check
docs: ; ./scripts/test -q tests/house/test_docs.py
bench: ; ./scripts/bench
