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

struct ReportCommand {
  std::vector<std::filesystem::path> files;
  Format format = Format::text;
  std::optional<int> baseline;          ///< rank count; absent = first point that is ok
  bool whole_node = false;              ///< take the first point that fills a node instead
  std::optional<std::string> detail{};  ///< "all", or sections between commas; absent = a summary
  bool index_only = false;              ///< describe each file by itself
  std::filesystem::path trace;          ///< where traces are written for a viewer; empty = nowhere
  std::filesystem::path html;           ///< where the report is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct CompareCommand {
  std::vector<std::vector<std::filesystem::path>> sides;  ///< two or more; launches of each
  std::vector<std::string> names{};  ///< one for each side; empty = named by file or machine
  Format format = Format::text;
  std::optional<int> baseline;   ///< rank count; absent = first point that is ok on all sides
  bool whole_node = false;       ///< take the first point that fills a node instead
  std::optional<double> gate;    ///< loss of throughput, 0.05 = 5%, above which to fail
  bool strict = false;           ///< fail also if the gate cannot decide
  bool anyway = false;           ///< compare even if settings differ, and mark it
  std::filesystem::path html{};  ///< where the comparison is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct PredictCommand {
  std::filesystem::path source;  ///< a run file, or a data sheet: a name or a .toml file
  std::vector<std::filesystem::path> launches;  ///< further runs of the same experiment
  std::vector<int> ranks;                       ///< ascending, at least one
  std::string workload;  ///< "" = that of the run's first curve; for a sheet hybrid
  std::optional<workloads::Model> model;  ///< absent = that of the run
  std::string model_source{};             ///< the value of --model; "" = not given
  std::string network{};                  ///< sheet or run that replaces the network; "" = none
  std::optional<program::Precision> precision;  ///< absent = that of the run; for a sheet bf16
  std::optional<workloads::Scaling> scaling;    ///< absent = that of the run; for a sheet strong
  mesh::Request mesh;  ///< axes that the user named; empty = the run's, or the natural mesh
  bool best = false;   ///< search for the fastest mesh and options
  /// Workload options, and what-if changes of the machine: key and value in the order given.
  std::vector<std::pair<std::string, std::string>> settings;
  std::optional<int> node_ranks;  ///< ranks on a node; absent = as measured, or as the sheet says
  bool each_rank = false;         ///< simulate every rank, noise and slow ranks included
  std::optional<int> baseline;    ///< rank count; absent = first measured, else first predicted
  Format format = Format::text;
  std::filesystem::path html{};  ///< where the prediction is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct ListCommand {
  enum class What : std::uint8_t { workloads, models, suites, options, systems, keys };
  enum class File : std::uint8_t { model, system, suite };
  What what = What::workloads;
  std::string workload{};   ///< whose options are listed
  File file = File::model;  ///< the kind of file whose keys are listed
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

/// Like parse_command_line(), with the caller's table of workloads. The first argument is the
/// program's name.
[[nodiscard]] Command parse_arguments(std::span<const std::string> arguments,
                                      std::span<const workloads::Workload> known);

/// Returns the arguments as a user would type them into a shell. An argument that is not plain text
/// is written in ASCII as $'...'.
[[nodiscard]] std::string shell_quoted(std::span<const std::string> arguments);
/// Splits a line that shell_quoted() returned into its arguments. It cannot read those written as
/// $'...'.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

/// Formats the description of one key of an input file. `fallback` is its default value, or
/// "needed" if the key is mandatory.
[[nodiscard]] std::string key_text(std::string_view key, std::string_view fallback,
                                   std::string_view meaning);

/// Returns the output of `isoscale list ...`, whose lines all end with a line break. Throws
/// std::logic_error for the keys of data sheets, which this library does not know.
[[nodiscard]] std::string listing(const ListCommand& command,
                                  std::span<const workloads::Workload> known);

}  // namespace isoscale::config
