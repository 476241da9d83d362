// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/run_config.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::config {

enum class ReportFormat : std::uint8_t { text, json, csv, markdown, nccl_tests };
[[nodiscard]] std::string_view name(ReportFormat format);

struct ReportCommand {
  std::vector<std::filesystem::path> files;
  ReportFormat format = ReportFormat::text;
  std::optional<int> baseline;          ///< rank count; absent = first point that is ok
  bool whole_node = false;              ///< or the first point that fills a node
  std::optional<std::string> detail{};  ///< "all", or sections between commas; absent = a summary
  bool index_only = false;              ///< describe each file, not what several of them show
  std::filesystem::path trace;          ///< where traces are written for a viewer; empty = nowhere
  std::filesystem::path html;           ///< where the report is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

enum class CompareFormat : std::uint8_t { text, json, csv, junit, markdown };
[[nodiscard]] std::string_view name(CompareFormat format);

struct CompareCommand {
  std::vector<std::vector<std::filesystem::path>> sides;  ///< two or more; each launches of one
  std::vector<std::string> names{};  ///< one for each side; empty = by files or machines
  CompareFormat format = CompareFormat::text;
  std::optional<int> baseline;   ///< rank count; absent = first point that is ok on all sides
  bool whole_node = false;       ///< or the first point that fills a node
  std::optional<double> gate;    ///< loss of throughput, 0.05 = 5%, above which to fail
  bool strict = false;           ///< fail also if the gate cannot decide
  bool anyway = false;           ///< compare also what differs in setup, and mark it
  std::filesystem::path html{};  ///< where the comparison is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

enum class PredictFormat : std::uint8_t { text, json, csv };
[[nodiscard]] std::string_view name(PredictFormat format);

struct PredictCommand {
  std::filesystem::path source;  ///< a run file, or a data sheet: a name or a .toml file
  std::vector<std::filesystem::path> launches;  ///< further runs of the same experiment
  std::vector<int> ranks;                       ///< ascending, at least one
  std::string workload;                   ///< "" = the run's first curve; of a data sheet hybrid
  std::optional<workloads::Model> model;  ///< absent = that of the run
  std::string model_source{};             ///< as it was named: a name or a file; "" = not
  std::string network{};                  ///< sheet or run with the network's numbers; "" = its own
  std::optional<workloads::Precision> precision;  ///< absent = that of the run; of a sheet bf16
  std::optional<workloads::Scaling> scaling;      ///< absent = that of the run; of a sheet strong
  mesh::Request mesh;  ///< axes named; empty = as the run has it, or the natural mesh
  bool best = false;   ///< search for the mesh and options instead
  /// Options of the workload, and what-ifs of the machine: key and value in the order given.
  std::vector<std::pair<std::string, std::string>> settings;
  std::optional<int> node_ranks;  ///< ranks on a node; absent = as measured, or as the sheet says
  bool each_rank = false;         ///< play every rank by itself
  std::optional<int> baseline;    ///< rank count; absent = first measured, else first predicted
  PredictFormat format = PredictFormat::text;
  std::filesystem::path html{};  ///< where the prediction is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct ListCommand {
  enum class What : std::uint8_t { workloads, models, suites, options, systems, keys };
  enum class File : std::uint8_t { model, system, suite };
  What what = What::workloads;
  std::string workload{};   ///< for options
  File file = File::model;  ///< its keys are listed
};

[[nodiscard]] std::string_view name(ListCommand::What what);
[[nodiscard]] std::string_view name(ListCommand::File file);

/// The command that only prints `text` on standard output (--help, --version).
struct PrintCommand {
  std::string text;
};

using Command = std::variant<RunConfig, CheckCommand, ReportCommand, CompareCommand, PredictCommand,
                             ListCommand, PrintCommand>;

/// Reads the command line (CLI11). It never prints and never exits. Throws base::UsageError that
/// says what was wrong, where, and what would have been accepted (the nearest option, workload,
/// model ... by name).
[[nodiscard]] Command parse_command_line(int argc, const char* const* argv);

/// Reads arguments with the caller's table of workloads. The first argument is the program.
[[nodiscard]] Command parse_arguments(std::span<const std::string> arguments,
                                      std::span<const workloads::Workload> known);

/// Returns the arguments as a user would type them into a shell, in ASCII if they are not plain
/// text.
[[nodiscard]] std::string shell_quoted(std::span<const std::string> arguments);
/// Returns the arguments that shell_quoted() wrote. It does not read those written as $'...'.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

/// Formats one key of a file that people write; `fallback` is "needed" if the key must be there.
[[nodiscard]] std::string key_text(std::string_view key, std::string_view fallback,
                                   std::string_view meaning);

/// Returns the output of `isoscale list ...`: one line each, with a line break at the end. Throws
/// std::logic_error for the keys of data sheets, whose reader this library does not know.
[[nodiscard]] std::string listing(const ListCommand& command,
                                  std::span<const workloads::Workload> known);

}  // namespace isoscale::config
