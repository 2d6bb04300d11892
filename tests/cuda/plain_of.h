// Strips names from the type of a C function, so that our declarations of a library's functions can be
// compared with those of its header.
#pragma once
#include <type_traits>

namespace cosmati::cli {

// Enumerations become their underlying types, and structures known only by pointer become void.
template <class Any, bool = std::is_enum_v<Any>, bool = std::is_class_v<Any>>
struct PlainOf {
  using type = Any;
};
template <class Enumeration>
struct PlainOf<Enumeration, true, false> {
  using type = std::underlying_type_t<Enumeration>;
};
template <class Opaque>
struct PlainOf<Opaque, false, true> {
  using type = std::conditional_t<std::is_const_v<Opaque>, void const, void>;
};
template <class Target>
struct PlainOf<Target*, false, false> {
  using type = typename PlainOf<Target>::type*;
};
template <class Returned, class... Parameters>
struct PlainOf<Returned(Parameters...), false, false> {
  using type = typename PlainOf<Returned>::type(typename PlainOf<Parameters>::type...);
};

template <class Ours, class Theirs>
constexpr bool equal(Ours ours, Theirs theirs) {
  return static_cast<unsigned>(ours) == static_cast<unsigned>(theirs);
}

}  // namespace cosmati::cli
