// Rejects language standards before C++20 with one clear message. The basic headers include this file first.
#pragma once

#if __cplusplus <= 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG > 201703L)
#error "Cosmati needs C++20 (-std=c++20)"
#endif
