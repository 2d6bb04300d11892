// What is left of a C function's type where names do not count: our declarations of a library's functions are
// compared with its header so.
#pragma once
#include <type_traits>

namespace cosmati::cli {

// Enumerations become their numbers, and structures that only a pointer is known of become nothing.
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
