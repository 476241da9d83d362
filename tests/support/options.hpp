// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>

#include "workloads/api/workload.hpp"

namespace isoscale::workloads {

/// Options written as "zero=3 prefetch=0".
inline Options options_of(std::string_view text) {
  Options options;
  std::istringstream words{std::string{text}};
  for (std::string word; words >> word;) {
    const std::size_t end = word.find('=');
    if (end == std::string::npos) throw std::invalid_argument{"no '=' in " + word};
    options[word.substr(0, end)] = word.substr(end + 1);
  }
  return options;
}

/// The reverse, " zero=3 prefetch=0".
inline std::string text_of(const Options& options) {
  std::string text;
  for (const auto& [key, value] : options) text.append(" ").append(key).append("=").append(value);
  return text;
}

/// A model of such numbers: "hidden=32 ... vocabulary=32", where gated=1 and kv_heads may lack.
inline Model test_model(const std::string& text) {
  const Options given = options_of(text);
  const auto number = [&](const char* key) { return std::stoi(given.at(key)); };
  Model model{.name = "small", .source = "test"};
  model.hidden = number("hidden");
  model.ffn = number("ffn");
  model.heads = number("heads");
  model.kv_heads = number(given.contains("kv_heads") ? "kv_heads" : "heads");
  model.head_size = number("head_size");
  model.gated_mlp = given.contains("gated") && number("gated") != 0;
  model.layers = number("layers");
  model.sequence = number("sequence");
  model.vocabulary = number("vocabulary");
  return model;
}

}  // namespace isoscale::workloads
