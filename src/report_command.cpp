// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/ranges.h>

#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analysis/catalog/run_index.hpp"
#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "analysis/traces/trace_export.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "commands_and_output.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/reader/appended_summary.hpp"
#include "results/reader/reader.hpp"

namespace isoscale {
namespace {

std::string render(const analysis::merge::Report& report, const settings::ReportCommand& command) {
  using enum settings::Format;
  if (command.format == json) return analysis::render::render_json(report);
  if (command.format == csv) return analysis::render::render_csv(report);
  if (command.format == markdown) return analysis::render::render_markdown(report);
  if (command.format == nccl_tests) return analysis::render::render_nccl_tests(report);
  if (!command.detail) return analysis::render::render_summary(report, output_columns());
  return analysis::render::render_sections(report,
                                           analysis::render::Sections::parse(*command.detail));
}

/// Returns "a.h5" or "launch 1 (a.h5), launch 2 (b.h5)"; for more than 8 files "9 launches".
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

/// Writes the traces to the file that --trace names. Messages about this go to standard error,
/// since the report is on standard output.
void write_trace(const analysis::RunFiles& launches, const settings::ReportCommand& command) {
  const analysis::traces::TraceExport result =
      analysis::traces::write_trace_file(launches.runs, command.trace, command.if_exists);
  for (const std::string& sentence : result.left_out) base::warn("--trace: " + sentence);
  base::warn(fmt::format("wrote {} with {} steps and ops of {}; open it in https://ui.perfetto.dev",
                         command.trace.string(), result.events, launches_text(launches.files)));
}

/// Throws base::UsageError if --html and --trace name the same file.
void require_two_files(const settings::ReportCommand& command) {
  if (command.html.empty() || command.trace.empty()) return;
  const auto place = [](const std::filesystem::path& path) {
    return results::resolved_output(path).lexically_normal();
  };
  if (place(command.html) != place(command.trace)) return;
  throw base::usage_error("--html and --trace name one file, {}; name two", command.html.string());
}

constexpr auto has_baseline = [](const auto& curve) { return curve.baseline.has_value(); };

std::string no_such_point(int baseline) {
  return fmt::format("--baseline {}: no point that is ok has {}", baseline,
                     base::counted(baseline, "rank"));
}

/// Throws base::UsageError if no run of the index has the baseline that the user asked for. The
/// message does not list valid rank counts, since an index does not keep them.
void require_baseline(const settings::ReportCommand& command,
                      const analysis::catalog::Index& index) {
  const bool found = std::ranges::any_of(index.runs, [&](const analysis::catalog::IndexRun& run) {
    return std::ranges::any_of(run.experiments, has_baseline);
  });
  if (command.baseline && !found) throw base::UsageError(no_such_point(*command.baseline));
}

/// Throws base::UsageError if no curve has the baseline that the user asked for.
void require_baseline(const settings::ReportCommand& command,
                      const analysis::merge::Report& report) {
  if (!command.whole_node && !command.baseline) return;
  const bool found = std::ranges::any_of(report.joined.curves, has_baseline,
                                         &analysis::merge::JoinedCurve::curve) ||
                     std::ranges::any_of(report.runs, [&](const analysis::RunReport& run) {
                       return std::ranges::any_of(run.curves, has_baseline);
                     });
  if (found) return;
  if (command.whole_node) {
    throw base::UsageError(
        "--baseline node: no point that is ok fills one whole node with all the ranks that its "
        "launch has there; measure one, as with --ranks set to the ranks of a node, or name a rank "
        "count");
  }
  std::set<int> ranks;
  for (const analysis::RunReport& run : report.runs) {
    for (const analysis::Curve& curve : run.curves) {
      for (const analysis::PointReport& point : curve.points) {
        if (point.throughput) ranks.insert(point.data->ranks);
      }
    }
  }
  throw base::UsageError(
      no_such_point(*command.baseline) +
      (ranks.empty() ? std::string{} : fmt::format("; name one of {}", fmt::join(ranks, ", "))));
}

/// The largest number of files whose curves are shown in one report. With more files the report
/// would be unreadable, and memory might not hold all runs.
constexpr std::size_t most_joined = 32;

/// Warns of each file that cannot be read. `files` is the number of all files; if none of them can
/// be read, the function throws base::UsageError.
void say_unreadable(const std::vector<analysis::catalog::Unreadable>& unreadable,
                    std::size_t files) {
  if (files == 1 && !unreadable.empty()) throw base::UsageError(unreadable.front().reason);
  for (const analysis::catalog::Unreadable& file : unreadable) {
    base::warn("isoscale: not read: " + file.reason);
  }
  if (unreadable.size() == files) {
    throw base::usage_error("none of the {} files can be read", files);
  }
}

/// Reads run files and appends the runs to `into` in order. Returns the files that cannot be read.
/// Throws base::UsageError if none can be read.
std::vector<analysis::catalog::Unreadable> read_files(
    const std::vector<std::filesystem::path>& files, analysis::RunFiles& into) {
  std::vector<analysis::catalog::Unreadable> unreadable;
  for (const auto& file : files) {
    try {
      into.runs.push_back(results::read_run(file));
      into.files.push_back(file.string());
    } catch (const base::UsageError& error) {
      unreadable.push_back({.file = file.string(), .reason = error.what()});
    }
  }
  say_unreadable(unreadable, files.size());
  return unreadable;
}

/// Appends the entry of each file for the index (the short list of runs that --index prints) to
/// `into`, in the order of the files, and returns the files that cannot be read. Throws
/// base::UsageError if none can be read. Summary files are read on all cores. Runs without a
/// summary file are read as a whole, summarised and freed one after the other, since HDF5 allows
/// only one thread at a time.
std::vector<analysis::catalog::Unreadable> index_files(
    const std::vector<std::filesystem::path>& files, const analysis::ReportOptions& options,
    std::vector<analysis::catalog::IndexRun>& into) {
  std::vector<std::optional<analysis::catalog::IndexRun>> lines(files.size());
  const auto index = [&](std::size_t at, const results::RunSummary& summary) {
    lines[at] =
        analysis::catalog::index_run(analysis::summarise(summary, files[at].string(), options));
  };
  base::parallel_for(files.size(), [&](std::size_t at) {
    if (const auto summary = results::read_summary(files[at])) index(at, *summary);
  });
  std::vector<analysis::catalog::Unreadable> unreadable;
  for (std::size_t at = 0; at < files.size(); ++at) {
    const std::string file = files[at].string();
    try {
      if (!lines[at]) {
        index(at, results::summary_of(results::read_run(file)));
      }
      into.push_back(std::move(*lines[at]));
    } catch (const base::UsageError& error) {
      unreadable.push_back({.file = file, .reason = error.what()});
    } catch (const std::exception& error) {
      unreadable.push_back(
          {.file = file, .reason = fmt::format("{}: cannot be read ({})", file, error.what())});
    }
  }
  say_unreadable(unreadable, files.size());
  return unreadable;
}

void refuse_beside_index(const settings::ReportCommand& command, std::string_view option,
                         std::string_view why) {
  throw base::UsageError(
      command.index_only
          ? fmt::format("--index lists the contents of files and cannot be combined with {}, "
                        "which {}",
                        option, why)
          : fmt::format("{} {}, but {} files are only listed as an index; give at most {} files",
                        option, why, command.files.size(), most_joined));
}

void check_index(const settings::ReportCommand& command) {
  if (command.format == settings::Format::nccl_tests) {
    refuse_beside_index(command, "--format nccl-tests", "prints the rows of micro-benchmarks");
  }
  if (!command.trace.empty()) refuse_beside_index(command, "--trace", "writes traced steps");
  if (command.detail) refuse_beside_index(command, "--detail", "prints parts of reports");
  if (command.whole_node) {
    refuse_beside_index(command, "--baseline node", "asks where each rank was");
  }
}

std::string render(const analysis::render::IndexReport& report, settings::Format format) {
  using enum settings::Format;
  if (format == json) return analysis::render::render_index_json(report);
  if (format == csv) return analysis::render::render_index_csv(report);
  if (format == markdown) return analysis::render::render_index_markdown(report);
  return analysis::render::render_index_text(report);
}

base::ExitCode report_index(const settings::ReportCommand& command) {
  check_index(command);
  if (!command.html.empty()) analysis::page::require_page();
  analysis::render::IndexReport report;
  std::vector<analysis::catalog::IndexRun> runs;
  std::vector<analysis::catalog::Unreadable> unreadable =
      index_files(command.files, {.baseline = command.baseline}, runs);
  runs = analysis::catalog::without_copies(std::move(runs), report.warnings);
  for (const std::string& warning : report.warnings) base::warn("isoscale: " + warning);
  report.index = analysis::catalog::make_index(std::move(runs));
  report.index.unreadable = std::move(unreadable);
  require_baseline(command, report.index);
  if (!command.index_only) {
    report.why = fmt::format(
        "Of more than {} files only the index is shown; for curves, causes and warnings: isoscale "
        "report FILE..., of at most {}.",
        most_joined, most_joined);
    const bool for_programs =
        command.format == settings::Format::json || command.format == settings::Format::csv;
    if (for_programs) base::warn("isoscale: " + report.why);
  }
  analysis::page::write_page(report, command.html, command.if_exists);
  return print(render(report, command.format));
}

}  // namespace

base::ExitCode execute(const settings::ReportCommand& command) {
  require_two_files(command);
  // A name after --detail that is no section is refused before any file is read or written.
  if (command.detail) (void)analysis::render::Sections::parse(*command.detail);
  if (command.index_only || command.files.size() > most_joined) return report_index(command);
  if (!command.html.empty()) analysis::page::require_page();
  // 1. Read each launch once.
  analysis::RunFiles read;
  std::vector<analysis::catalog::Unreadable> unreadable = read_files(command.files, read);
  const analysis::RunFiles launches = analysis::without_copies(std::move(read));
  for (const std::string& warning : launches.warnings) base::warn("isoscale: " + warning);
  if (!command.trace.empty()) write_trace(launches, command);
  // 2. Analyse each launch, then all together.
  const analysis::ReportOptions options{.baseline = command.baseline,
                                        .whole_node = command.whole_node};
  std::vector<analysis::RunReport> reports;
  std::vector<analysis::catalog::IndexRun> runs;
  for (std::size_t i = 0; i < launches.runs.size(); ++i) {
    reports.push_back(analysis::make_report(launches.runs[i], launches.files[i], options));
    runs.push_back(analysis::catalog::index_run(reports.back()));
  }
  analysis::merge::Report report{.runs = reports,
                                 .joined = analysis::merge::join(reports, options),
                                 .warnings = launches.warnings,
                                 .index = analysis::catalog::make_index(std::move(runs))};
  report.index.unreadable = std::move(unreadable);
  require_baseline(command, report);
  // 3. Print the report.
  analysis::page::write_page(report, command.html, command.if_exists);
  return print(render(report, command));
}

}  // namespace isoscale
