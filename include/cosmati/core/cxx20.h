// Included before all else by the headers that the others rest on: an older standard is told in a sentence,
// not by what it makes of the code.
#pragma once

#if __cplusplus <= 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG > 201703L)
#error "Cosmati needs C++20 (-std=c++20)"
#endif
