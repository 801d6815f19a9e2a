# Thin fronts of tools/; each verb does all the set-up that it needs.
.PHONY: setup build demo test lint bench install
setup: ; @tools/setup
build: ; @tools/build
demo: ; @tools/demo
test: ; @tools/test
lint: ; @tools/lint
bench: ; @tools/bench
install: ; @tools/install
