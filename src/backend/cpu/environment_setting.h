// An environment variable that is set while a library is opened, which reads it then.
#pragma once
#include <cstdlib>

namespace cosmati::cpu {

// Sets the variable for as long as the object lives, unless the user has set it.
class EnvironmentSetting {
 public:
  EnvironmentSetting(char const* name, char const* value) : name_(name), ours_(std::getenv(name) == nullptr) {
    if (ours_) setenv(name, value, 1);
  }
  ~EnvironmentSetting() {
    if (ours_) unsetenv(name_);
  }
  EnvironmentSetting(EnvironmentSetting const&) = delete;
  EnvironmentSetting& operator=(EnvironmentSetting const&) = delete;

 private:
  char const* name_;
  bool ours_;
};

}  // namespace cosmati::cpu
