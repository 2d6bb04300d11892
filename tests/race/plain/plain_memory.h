// Included before every file of the emulator that race_test runs: its copies go to functions of this folder.
// ThreadSanitizer would take those of the C library for the kernel's own accesses.
#pragma once
__asm__(".set memcpy, cosmati_plain_memcpy");
__asm__(".set memmove, cosmati_plain_memmove");
__asm__(".set memset, cosmati_plain_memset");
