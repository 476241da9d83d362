// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/launches/distinct.hpp"
#include "analysis/launches/join.hpp"
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

std::string render(const analysis::Report& report, config::ReportFormat format) {
  switch (format) {
    case config::ReportFormat::json:
      return analysis::render_json(report);
    case config::ReportFormat::csv:
      return analysis::render_csv(report);
    case config::ReportFormat::markdown:
      return analysis::render_markdown(report);
    case config::ReportFormat::nccl_tests:
      return analysis::render_nccl_tests(report);
    case config::ReportFormat::text:
      break;
  }
  return analysis::render_text(report);
}

/// "a.h5", "launch 1 (a.h5), launch 2 (b.h5)"; of very many only how many.
std::string launches_text(std::span<const std::string> files) {
  constexpr std::size_t most_listed = 8;
  if (files.size() == 1) return files.front();
  if (files.size() > most_listed) return fmt::format("{} launches", files.size());
  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) {
    text += fmt::format("{}launch {} ({})", i == 0 ? "" : ", ", i + 1, files[i]);
  }
  return text;
}

/// Says on standard error what was written: standard output is the report's.
void write_trace(const analysis::RunFiles& launches, const config::ReportCommand& command) {
  if (results::may_be_run_file(command.trace)) {
    throw base::UsageError(fmt::format(
        "--trace: {} holds a run; name another file for its timelines", command.trace.string()));
  }
  const analysis::TraceExport result =
      analysis::write_trace_file(launches.runs, command.trace, command.if_exists);
  for (const std::string& sentence : result.left_out) base::warn("--trace: " + sentence);
  base::warn(fmt::format("wrote {} with {} steps and ops of {}; open it in https://ui.perfetto.dev",
                         command.trace.string(), result.events, launches_text(launches.files)));
}

/// Launches that measured no whole node have nothing that --baseline node could mean.
void require_whole_node(const analysis::Report& report) {
  const auto has_baseline = [](const analysis::Curve& curve) { return curve.baseline.has_value(); };
  const bool found =
      std::ranges::any_of(report.joined.curves, has_baseline, &analysis::JoinedCurve::curve) ||
      std::ranges::any_of(report.runs, [&](const analysis::RunReport& run) {
        return std::ranges::any_of(run.curves, has_baseline);
      });
  if (found) return;
  throw base::UsageError(
      "--baseline node: no point that is ok fills one whole node with all the ranks that its "
      "launch has there; measure one, as with --ranks set to the ranks of a node, or name a rank "
      "count");
}

base::ExitCode report_command(const config::ReportCommand& command) {
  // 1. Read, each launch once.
  analysis::RunFiles read;
  for (const auto& file : command.files) {
    read.runs.push_back(results::read_run(file));
    read.files.push_back(file.string());
  }
  const analysis::RunFiles launches = analysis::without_copies(std::move(read));
  for (const std::string& warning : launches.warnings) base::warn("isoscale: " + warning);
  if (!command.trace.empty()) write_trace(launches, command);
  // 2. Look at each, then at all together.
  const analysis::ReportOptions options{.baseline = command.baseline,
                                        .whole_node = command.whole_node};
  std::vector<analysis::RunReport> reports;
  for (std::size_t i = 0; i < launches.runs.size(); ++i) {
    reports.push_back(analysis::make_report(launches.runs[i], launches.files[i], options));
  }
  const analysis::Report report{
      .runs = reports, .joined = analysis::join(reports, options), .warnings = launches.warnings};
  if (command.whole_node) require_whole_node(report);
  // 3. Say it.
  return print(render(report, command.format));
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
