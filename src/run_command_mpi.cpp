// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/system_file.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "comm/communicator.hpp"
#include "commands_and_output.hpp"
#include "machine/job_environment.hpp"
#include "results/reader/reader.hpp"
#include "runner/preflight_and_executor_choice.hpp"
#include "runner/run.hpp"
#include "runner/watch/supervisor.hpp"

namespace isoscale {
namespace {

/// Prints a text. Returns true if the whole text was written, and warns if it was not.
bool print_or_warn(const std::string& text) {
  try {
    print(text);
    return true;
  } catch (const std::exception& error) {
    base::warn(fmt::format("isoscale: {}", error.what()));
    return false;
  }
}

/// Prints the summary of a finished run or, if its file is larger than 16 MiB, the command that
/// prints it. The run's data is on disk, so an error here only causes a warning.
void show_file(const std::filesystem::path& file) {
  // Reading and analysing a larger file takes over a second, and all ranks would wait for it.
  constexpr std::uintmax_t largest = 16U << 20U;
  const std::string name = file.string();
  try {
    if (std::filesystem::file_size(file) > largest) {
      print_or_warn(
          fmt::format("read it with: isoscale report {}\n", base::shell_quoted({&name, 1})));
      return;
    }
    const results::RunData run = results::read_run(file);
    const analysis::RunReport report = analysis::make_report(run, name, {});
    print_or_warn("\n" + analysis::render::render_summary({{&report, 1}}, output_columns()));
  } catch (const std::exception& error) {
    base::warn(fmt::format("no summary: {} cannot be read back: {}", name, error.what()));
  }
}

runner::PricedMachine priced_machine(const std::string& sheet) {
  const simulate::Machine machine = analysis::predict::load_system(sheet);
  runner::PricedMachine priced{
      .name = machine.name,
      .node_ranks = machine.network ? machine.network->node_ranks : 1,
      .memory = std::nullopt,
      .step = [machine](const auto& workload, const auto& request, int node_ranks) {
        return units::Seconds{
            analysis::predict::sheet_step_time(workload, request, machine, node_ranks)};
      }};
  if (machine.processor) {
    for (const simulate::MatrixRate& rate : machine.processor->matrix) {
      if (rate.type == program::DType::bf16) priced.half_precision_rate = rate.peak / 2;
    }
  }
  if (machine.memory && machine.memory->capacity > 0) {
    priced.memory = units::Bytes{static_cast<std::uint64_t>(machine.memory->capacity)};
  }
  return priced;
}

/// Throws base::UsageError on every rank if any rank was started with other arguments than rank 0.
/// Without this check, such ranks could wait for each other forever.
void require_one_command(const std::string& command, const comm::Communicator& world) {
  const std::string first = world.broadcast(command);
  const bool is_other = first != command;
  const comm::Vote vote = comm::all_ok(
      world, is_other ? fmt::format("was started with '{}', and rank 0 with '{}'; start all ranks "
                                    "with one command",
                                    command, first)
                      : "");
  if (!vote.ok) throw base::UsageError(vote.why);
}

/// Runs `work` with MPI and returns the exit code. Rank 0 prints an error that all ranks have, and
/// all return its exit code. A rank that fails alone prints its error and ends the job; in a job of
/// one rank, the error is rethrown. `work` gets the communicator of all ranks and the supervisor.
template <class Work>
base::ExitCode under_mpi(int argc, char** argv, units::Seconds timeout, const Work& work) {
  // argv[0], the program's path, is left out, since it may differ between nodes.
  const std::string arguments = base::shell_quoted(std::vector<std::string>(argv + 1, argv + argc));
  // The environment is read before MPI starts, because an MPI library that finds no launcher sets
  // some variables of a launcher itself.
  const bool speaks = machine::speaks_for_launch(machine::process_environment());
  const auto alone = machine::singleton_problem(1, machine::process_environment());
  // Signals are blocked before MPI starts threads, because threads inherit the mask.
  runner::watch::HeldSignals signals;
  runner::watch::MpiLimit limit{timeout, speaks};
  limit.starts();
  const comm::Environment environment{&argc, &argv};
  comm::Communicator world = comm::Communicator::world();
  runner::watch::Supervisor supervisor{world, signals};
  limit.is_over();
  supervisor.set_timeout(timeout);
  world.count_calls(supervisor.activity().calls());
  // This is for errors that all ranks have: rank 0 prints the error, and all ranks end normally.
  const auto leave_together = [&](const base::Error& error) {
    limit.ends();
    if (world.rank() == 0 && speaks) base::warn(fmt::format("isoscale: {}", error.what()));
    return error.exit_code();
  };
  try {
    if (world.size() == 1 && alone) throw base::UsageError(*alone);
    base::ExitCode code = base::ExitCode::done;
    {
      const runner::watch::Supervisor::Watch watch{supervisor};
      require_one_command(arguments, world);
      code = work(world, supervisor);
    }
    limit.ends();
    return code;
  } catch (const base::UsageError& error) {
    return leave_together(error);
  } catch (const base::AgreedError& error) {
    return leave_together(error);
  } catch (const std::exception& error) {
    if (world.size() == 1) throw;
    base::warn(fmt::format("isoscale: rank {}: {}; ending the job", world.rank(),
                           comm::problem_of(error)));
    comm::Environment::abort_job(static_cast<int>(base::ExitCode::failed));
  }
}

}  // namespace

base::ExitCode execute(const settings::RunConfig& config, int argc, char** argv) {
  return under_mpi(argc, argv, config.timeout, [&](const auto& world, auto& supervisor) {
    bool is_printed = true;
    const auto show = [&](const std::string& text) {
      is_printed = print_or_warn(text) && is_printed;
    };
    const base::ExitCode code = runner::run(config, world,
                                            {.print = show,
                                             .show_file = show_file,
                                             .priced_machine = priced_machine,
                                             .supervisor = supervisor});
    // The output of a dry run is its only result; a run has its results on disk.
    if (config.mode != settings::Mode::dry_run) return code;
    return world.broadcast(is_printed) ? code : base::ExitCode::failed;
  });
}

base::ExitCode execute(const settings::CheckCommand& command, int argc, char** argv) {
  return under_mpi(argc, argv, command.config.timeout, [&](const auto& world, auto& /*watch*/) {
    const results::PreflightData found = runner::check(command.config, world);
    bool is_printed = true;
    if (world.rank() == 0) {
      is_printed = print_or_warn(command.format == settings::Format::json
                                     ? analysis::render::render_checks_json(found)
                                     : analysis::render::render_checks_text(found));
    }
    const base::ExitCode code = results::stops(found.results) ? base::ExitCode::usage
                                : is_printed                  ? base::ExitCode::done
                                                              : base::ExitCode::failed;
    return world.broadcast(code);
  });
}

}  // namespace isoscale
