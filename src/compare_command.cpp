// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "compare_command.hpp"

namespace isoscale {

base::ExitCode compare_command(const config::CompareCommand&) {
  throw base::UsageError("compare: not built yet");
}

}  // namespace isoscale
