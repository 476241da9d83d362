// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace isoscale::testing_support {

using Texts = std::map<std::string, std::string, std::less<>>;

/// Looks texts up by their names, in place of the environment's variables or the kernel's files.
inline auto known(Texts texts) {
  return [texts = std::move(texts)](std::string_view name) -> std::optional<std::string> {
    const auto found = texts.find(name);
    return found == texts.end() ? std::nullopt : std::optional{found->second};
  };
}

}  // namespace isoscale::testing_support
