// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/errors.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <sstream>

#include "machine/kernel_files.hpp"
#include "units/text.hpp"

namespace isoscale::comm {
namespace {

std::string held() {
  std::istringstream pages{machine::read_file("/proc/self/statm").value_or("")};
  std::uint64_t whole = 0, resident = 0;
  if (!(pages >> whole >> resident)) return "what it holds";
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return fmt::format("the {} that it holds", units::format(units::Bytes{resident * page}));
}

}  // namespace

std::string problem_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  const auto left = machine::memory_available(machine::read_file);
  return fmt::format(
      "out of memory: this rank needs more than {}; {} free on its node: use a smaller model or "
      "batch, or fewer ranks per node",
      held(), left ? units::format(*left) : "unknown");
}

}  // namespace isoscale::comm
