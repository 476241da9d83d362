// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <new>
#include <string>
#include <variant>
#include <vector>

#include "base/warn.hpp"
#include "commands_and_output.hpp"
#include "machine/job_environment.hpp"

namespace isoscale {
namespace {

base::ExitCode execute(const config::PrintCommand& command) { return print(command.text); }

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  using namespace isoscale;  // NOLINT: only this function is outside of the namespace
  try {
    // 1. Read the command line.  2. Execute the command.
    const config::Command command =
        config::parse_arguments(std::vector<std::string>(argv, argv + argc));
    const auto execution = [&](const auto& one) {
      if constexpr (requires { execute(one, argc, argv); }) {
        return execute(one, argc, argv);
      } else {
        return execute(one);
      }
    };
    return static_cast<int>(std::visit(execution, command));
  } catch (const base::UsageError& error) {
    // Every rank finds the same mistake before MPI has started, so only one process prints it.
    const std::string_view name = argc > 1 ? argv[1] : "";
    const bool many = name == "run" || name == "check";
    if (!many || machine::speaks_for_launch(machine::process_environment())) {
      base::warn(fmt::format("isoscale: {}", error.what()));
    }
    return static_cast<int>(error.exit_code());
  } catch (const base::Error& error) {
    base::warn(fmt::format("isoscale: {} [{}:{}]", error.what(), error.where().file_name(),
                           error.where().line()));
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    base::warn("isoscale: out of memory before anything was measured, or after all was");
    return static_cast<int>(base::ExitCode::failed);
  } catch (const std::exception& error) {
    base::warn(fmt::format("isoscale: {}", error.what()));
    return static_cast<int>(base::ExitCode::failed);
  }
}
