// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "analysis/traces/trace_export.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "config/command_line.hpp"
#include "config/listing.hpp"
#include "results/reader.hpp"
#include "run_command.hpp"
#include "system/facts.hpp"

namespace isoscale {
namespace {

base::ExitCode print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw base::Error("standard output cannot be written");
  return base::ExitCode::done;
}

std::string render(std::span<const analysis::RunReport> reports, config::ReportFormat format) {
  switch (format) {
    case config::ReportFormat::json:
      return analysis::render_json(reports);
    case config::ReportFormat::csv:
      return analysis::render_csv(reports);
    case config::ReportFormat::markdown:
      return analysis::render_markdown(reports);
    case config::ReportFormat::nccl_tests:
      return analysis::render_nccl_tests(reports);
    case config::ReportFormat::text:
      break;
  }
  return analysis::render_text(reports);
}

/// Says on standard error what was written: standard output is the report's.
void write_trace(std::span<const results::RunData> runs, const config::ReportCommand& command) {
  if (results::may_be_run_file(command.trace)) {
    throw base::UsageError(fmt::format(
        "--trace: {} holds a run; name another file for its timelines", command.trace.string()));
  }
  const analysis::TraceExport result =
      analysis::write_trace_file(runs, command.trace, command.if_exists);
  for (const std::string& sentence : result.left_out) base::warn("--trace: " + sentence);
  base::warn(fmt::format("wrote {} with {} steps and ops; open it in https://ui.perfetto.dev",
                         command.trace.string(), result.events));
}

base::ExitCode report_command(const config::ReportCommand& command) {
  std::vector<results::RunData> runs;
  for (const auto& file : command.files) runs.push_back(results::read_run(file));
  if (!command.trace.empty()) write_trace(runs, command);
  std::vector<analysis::RunReport> reports;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    reports.push_back(
        analysis::make_report(runs[i], command.files[i].string(), {.baseline = command.baseline}));
  }
  return print(render(reports, command.format));
}

/// The subcommands.
struct Execute {
  int argc;
  char** argv;
  base::ExitCode operator()(const config::RunConfig& command) const {
    return run_command(command, argc, argv);
  }
  base::ExitCode operator()(const config::CheckCommand& command) const {
    return check_command(command, argc, argv);
  }
  base::ExitCode operator()(const config::ReportCommand& command) const {
    return report_command(command);
  }
  base::ExitCode operator()(const config::ListCommand& command) const {
    return print(config::listing(command, workloads::registry()));
  }
  base::ExitCode operator()(const config::PrintCommand& command) const {
    return print(command.text);
  }
};

}  // namespace

int run(int argc, char** argv) {
  try {
    // 1. Read what is asked for.  2. Do it.
    const config::Command command = config::parse_command_line(argc, argv);
    return static_cast<int>(std::visit(Execute{argc, argv}, command));
  } catch (const base::UsageError& error) {
    // Every rank finds the same mistake before MPI has started; the launcher's first
    // speaks.
    const std::string_view name = argc > 1 ? argv[1] : "";
    const bool many = name == "run" || name == "check";
    if (!many || system::speaks_for_launch(system::process_environment())) {
      base::warn(fmt::format("isoscale: {}", error.what()));
    }
    return static_cast<int>(error.exit_code());
  } catch (const base::Error& error) {
    base::warn(fmt::format("isoscale: {} [{}:{}]", error.what(), error.where().file_name(),
                           error.where().line()));
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    base::warn(fmt::format("isoscale: {}", error.what()));
    return static_cast<int>(base::ExitCode::failed);
  }
}

}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }
