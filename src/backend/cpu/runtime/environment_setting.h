// Sets an environment variable while a library that reads it is loaded.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace cosmati::cpu {

// Sets the variable for the lifetime of the object, unless the user has set it and `over_users` is false. A
// null value sets nothing.
class EnvironmentSetting {
 public:
  EnvironmentSetting(char const* name, char const* value, bool over_users = false) : name_(name) {
    char const* const users = std::getenv(name);
    ours_ = value != nullptr && (over_users || users == nullptr);
    if (!ours_) return;
    if (users != nullptr) users_ = users;
    setenv(name, value, 1);
  }
  ~EnvironmentSetting() {
    if (!ours_) return;
    if (users_)
      setenv(name_, users_->c_str(), 1);
    else
      unsetenv(name_);
  }
  EnvironmentSetting(EnvironmentSetting const&) = delete;
  EnvironmentSetting& operator=(EnvironmentSetting const&) = delete;

 private:
  char const* name_;
  bool ours_ = false;
  std::optional<std::string> users_;
};

}  // namespace cosmati::cpu
