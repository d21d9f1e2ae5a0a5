# The usual names for what CMake, tests/run, debian/make-package and python/backend.py do.
BUILD = build/release

.PHONY: all check install package python clean

all:
	cmake --preset release -B $(BUILD)
	cmake --build $(BUILD)

check:
	tests/run all

# PREFIX=~/.local: for one user, without root. DESTDIR is taken from the environment.
install: all
	cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

package:
	debian/make-package

# Wheel and sdist of the module, in build/python.
python:
	python3 python/backend.py build/python

clean:
	rm -rf build
