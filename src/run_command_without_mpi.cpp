// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <string_view>

#include "commands_and_output.hpp"

namespace isoscale {
namespace {

[[noreturn]] void refuse(std::string_view command) {
  throw base::usage_error(
      "{}: this isoscale was built without MPI and only reads run files; build with "
      "-DISOSCALE_MPI=ON to measure",
      command);
}

}  // namespace

base::ExitCode execute(const settings::RunConfig& /*config*/, int /*argc*/, char** /*argv*/) {
  refuse("run");
}

base::ExitCode execute(const settings::CheckCommand& /*command*/, int /*argc*/, char** /*argv*/) {
  refuse("check");
}

}  // namespace isoscale
