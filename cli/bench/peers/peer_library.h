// Opening a peer on a GPU, by name, when it is first needed.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::cli {

class PeerLibrary {
 public:
  // The file that the environment's `variable` names, else the first of `names` where libraries are, else
  // what the linker finds by the first. `peer`: "cudnn", `title`: "cuDNN", for messages. Stays open. Throws
  // Error(unavailable) with the reason.
  PeerLibrary(std::string const& peer, std::string const& title, char const* variable,
              std::vector<std::string> const& names);
  // Throws Error(unavailable) if there is no such function.
  template <class Function>
  void bind(Function*& function, char const* name) const {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(char const* name) const;

  std::string peer_, path_;
  void* handle_;
};

// "cuDNN 9.19.2" of 91902.
std::string peer_version(std::string const& title, std::size_t number);

}  // namespace cosmati::cli
