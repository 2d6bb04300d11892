// Included before every emulator file in race_test, so that its copies call functions of this folder.
// ThreadSanitizer would treat those of the C library as the kernel's own accesses.
#pragma once
__asm__(".set memcpy, cosmati_plain_memcpy");
__asm__(".set memmove, cosmati_plain_memmove");
__asm__(".set memset, cosmati_plain_memset");
