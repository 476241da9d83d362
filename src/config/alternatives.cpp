// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/alternatives.hpp"

#include <utility>

namespace isoscale::config {

std::vector<std::string> values_of(const workloads::OptionSpec& spec, const std::string& text) {
  std::vector<std::string> values{text};
  if (spec.type != workloads::OptionType::choice) return values;
  for (std::size_t comma = 0; (comma = values.back().find(',')) != std::string::npos;) {
    std::string rest = values.back().substr(comma + 1);
    values.back().resize(comma);
    values.push_back(std::move(rest));
  }
  return values;
}

std::vector<Experiment> alternatives(const Experiment& experiment,
                                     const workloads::Workload& workload) {
  std::vector<Experiment> all{experiment};
  for (const workloads::OptionSpec& spec : workload.options) {
    const auto given = experiment.base.options.find(spec.key);
    if (given == experiment.base.options.end()) continue;
    std::vector<Experiment> next;
    for (const Experiment& one : all) {
      for (const std::string& value : values_of(spec, given->second)) {
        next.push_back(one);
        next.back().base.options.insert_or_assign(std::string{spec.key}, value);
      }
    }
    all = std::move(next);
  }
  return all;
}

}  // namespace isoscale::config
