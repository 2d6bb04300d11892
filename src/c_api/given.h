// The arguments of one run, looked up by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cosmati.h"

namespace cosmati::c_api {

inline constexpr std::size_t max_arguments = 64;

class Given {
 public:
  // Throws Error(bad_request) if there are too many or one has no name.
  Given(cosmati_argument const* list, std::size_t count);

  // Returns null if there is no argument of this name; otherwise it counts as used.
  cosmati_argument const* find(char const* name);
  // Returns an unused argument, or null if all were used.
  cosmati_argument const* unused() const;
  std::span<cosmati_argument const> list() const { return {list_, count_}; }
  std::string names() const;  // "x, w, y", for messages

 private:
  cosmati_argument const* list_;
  std::size_t count_;
  std::uint64_t used_ = 0;  // one bit per argument
};

}  // namespace cosmati::c_api
