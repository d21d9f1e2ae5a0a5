/* Bytes as SOURCE. What is mounted for a specifier is no specifier, the file is not empty, and what
 * is refused has a reason. Patterns are ignored: they would read folders. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "fs/options/options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *spec = strndup((const char *)data, len);
    AUTO_OPTIONS struct options o;
    const char *source = spec;
    struct diag d = DIAG_INIT;
    int r;

    options_init(&o);
    if (!spec || strchr(spec, '*'))
        return 0;
    o.allow_commands = len % 2;
    r = options_take_specifier(&o, &source, &d);
    FUZZ_CHECK(r == 0 || (r < 0 && d.set));
    FUZZ_CHECK(source == spec || (r == 0 && *source && o.format.kaldi_layout));
    FUZZ_CHECK(source == spec || o.allow_commands || strncmp(source, "command:", 8) != 0 ||
               strstr(spec, "command:"));
    return 0;
}
