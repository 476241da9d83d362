// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/find_workload.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::config {

const workloads::Workload& find_workload(std::string_view name, std::string_view place,
                                         std::span<const workloads::Workload> known) {
  std::vector<std::string_view> names;
  for (const workloads::Workload& workload : known) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  throw base::UsageError(fmt::format("{}: unknown workload {}{}; the workloads are {}", place,
                                     base::quoted(name), base::did_you_mean(name, names),
                                     fmt::join(names, ", ")));
}

}  // namespace isoscale::config
