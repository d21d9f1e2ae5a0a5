/* What the address sanitizer need not do for each of thousands of inputs a second. For the stacks
 * of an error that was found: ASAN_OPTIONS=malloc_context_size=30. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "malloc_context_size=2:quarantine_size_mb=16";
}
