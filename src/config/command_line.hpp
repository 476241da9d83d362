// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/run_config.hpp"

namespace isoscale::config {

enum class ReportFormat : std::uint8_t { text, json, csv, markdown, nccl_tests };
[[nodiscard]] std::string_view name(ReportFormat format);

struct ReportCommand {
  std::vector<std::filesystem::path> files;
  ReportFormat format = ReportFormat::text;
  std::optional<int> baseline;  ///< rank count; absent = first point that is ok
  bool whole_node = false;      ///< or the first point that fills a node
  bool index_only = false;      ///< say what the files are, and nothing of what joins them
  std::filesystem::path trace;  ///< where traces are written for a viewer; empty = nowhere
  std::filesystem::path html;   ///< where the report is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

enum class CompareFormat : std::uint8_t { text, json, csv, junit, markdown };
[[nodiscard]] std::string_view name(CompareFormat format);

struct CompareCommand {
  std::vector<std::vector<std::filesystem::path>> sides;  ///< two or more; each launches of one
  CompareFormat format = CompareFormat::text;
  std::optional<int> baseline;   ///< rank count; absent = first point that is ok on all sides
  bool whole_node = false;       ///< or the first point that fills a node
  std::optional<double> gate;    ///< loss of throughput, 0.05 = 5%, above which to fail
  bool strict = false;           ///< fail also where the gate cannot tell
  bool anyway = false;           ///< compare what is unlike, marked
  std::filesystem::path html{};  ///< where the comparison is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct ListCommand {
  enum class What : std::uint8_t { workloads, models, suites, options };
  What what = What::workloads;
  std::string workload;  ///< for options
};

[[nodiscard]] std::string_view name(ListCommand::What what);

/// Nothing to do but print `text` on standard output (--help, --version).
struct PrintCommand {
  std::string text;
};

using Command =
    std::variant<RunConfig, CheckCommand, ReportCommand, CompareCommand, ListCommand, PrintCommand>;

/// Reads the command line (CLI11). Never prints, never exits. Throws base::UsageError: what was
/// wrong, where, and what would have been accepted (the nearest option, workload, model ... by
/// name).
[[nodiscard]] Command parse_command_line(int argc, const char* const* argv);

}  // namespace isoscale::config
