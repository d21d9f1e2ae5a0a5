# The usual names for what CMake, tests/run and debian/make-package do.
BUILD = build/release

.PHONY: all check install package clean

all:
	cmake --preset release -B $(BUILD)
	cmake --build $(BUILD)

check:
	tests/run

# DESTDIR is taken from the environment.
install: all
	cmake --install $(BUILD)

package:
	debian/make-package

clean:
	rm -rf build
