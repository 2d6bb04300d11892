// Loads a GPU peer library by name, on first use.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::cli {

class PeerLibrary {
 public:
  // Loads the file named by the environment variable `variable`, otherwise the first of `names` found in the
  // library folders, otherwise whatever the dynamic linker finds for the first name. `peer` ("cudnn") and
  // `title` ("cuDNN") appear in messages. The library stays loaded. Throws Error(unavailable) with the
  // reason.
  PeerLibrary(std::string const& peer, std::string const& title, char const* variable,
              std::vector<std::string> const& names);
  // Throws Error(unavailable) if the library does not export the function.
  template <class Function>
  void bind(Function*& function, char const* name) const {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(char const* name) const;

  std::string peer_, path_;
  void* handle_;
};

// Formats a version number, e.g. 91902 as "cuDNN 9.19.2".
std::string peer_version(std::string const& title, std::size_t number);

}  // namespace cosmati::cli
