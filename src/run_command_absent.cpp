// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "run_command.hpp"

namespace isoscale {

base::ExitCode run_command(const config::RunConfig& /*config*/, int /*argc*/, char** /*argv*/) {
  throw base::UsageError(
      "run: this isoscale was built without MPI and only reads run files; build with "
      "-DISOSCALE_MPI=ON to measure");
}

}  // namespace isoscale
