/* The scan as built without SSE2, under other names. */
#undef __SSE2__
#define libsvm_scan_text    portable_scan_text
#define libsvm_scan_release portable_scan_release
#include "format/libsvm/scan.c"
