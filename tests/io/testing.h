// Helpers for tests of file formats: a temporary folder, errors as text, truncated and altered files.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cosmati/ops/error.h"

namespace cosmati::io::testing {

// Removed with its contents at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cosmati-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;

  std::string operator/(char const* name) const { return path_ + "/" + name; }
  std::string const& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (auto const& entry : std::filesystem::directory_iterator(path_))
      result.push_back(entry.path().filename().string());
    return result;
  }

 private:
  std::string path_;
};

// The message of the Error that `call` throws; the test fails if it throws none, or one with another code.
template <class Call>
std::string error_of(Call&& call, ErrorCode code = ErrorCode::bad_file) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

inline bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

inline std::span<std::byte const> bytes_of(std::string const& text) {
  return {reinterpret_cast<std::byte const*>(text.data()), text.size()};
}

// A copy in a block of exactly its size, so that AddressSanitizer detects reads past its end.
inline std::vector<std::byte> exact_copy(std::string const& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// `parse(bytes)` rejects every proper prefix of `file`.
template <class Parse>
void expect_refused_when_cut(std::string const& file, Parse&& parse) {
  for (std::size_t length = 0; length < file.size(); ++length) {
    std::vector<std::byte> const cut = exact_copy(file.substr(0, length));
    std::string const message = error_of([&] { parse(std::span<std::byte const>(cut)); });
    EXPECT_FALSE(message.empty()) << "cut to " << length << " of " << file.size();
  }
}

// With any one byte changed, `parse` succeeds or throws an Error, nothing else.
template <class Parse>
void expect_no_crash_when_altered(std::string const& file, Parse&& parse) {
  for (std::size_t at = 0; at < file.size(); ++at)
    for (unsigned const change : {0x01u, 0x02u, 0x40u, 0x80u, 0xffu}) {
      std::vector<std::byte> altered = exact_copy(file);
      altered[at] ^= static_cast<std::byte>(change);
      try {
        parse(std::span<std::byte const>(altered));
      } catch (Error const&) {
      }
    }
}

}  // namespace cosmati::io::testing
