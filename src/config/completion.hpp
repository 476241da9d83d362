// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// Completes command lines in shells. The words are read from the commands and options as CLI11
/// knows them, so that no script has to be kept in step by hand.
namespace isoscale::config {

enum class Shell : std::uint8_t { bash, zsh, fish };
[[nodiscard]] std::string_view name(Shell shell);

/// The words and files that may stand in one place of a command line; none if only the user can
/// know.
struct Candidates {
  std::vector<std::string> words;    ///< one that ends in = is the beginning of a word
  std::vector<std::string> endings;  ///< of files that fit, ".h5"; "" = any file
  bool between_commas = false;       ///< several words may be given

  [[nodiscard]] bool empty() const { return words.empty() && endings.empty(); }
  bool operator==(const Candidates&) const = default;
};

struct CompletedOption {
  std::string flag;  ///< "--device"
  std::string help;
  std::string placeholder;  ///< of its value, as --help prints it; "" = it takes none
  Candidates value;
};

struct CompletedCommand {
  std::string name;
  std::string help;
  std::vector<CompletedOption> options;
  std::vector<Candidates> arguments;  ///< by position; the last one may be repeated
};

/// Reads the placeholder of a value in --help: "auto|cuda|host" are words, "FILE.h5" is a
/// file, "NAME[,NAME...]" is a list. `names` are added to the words.
[[nodiscard]] Candidates candidates_of(std::string_view placeholder,
                                       std::vector<std::string> names);

/// Returns all commands of `app`. The first, with the name "", holds the program's own options.
[[nodiscard]] std::vector<CompletedCommand> completed_commands(
    const CLI::App& app, std::span<const workloads::Workload> known);

/// Returns a script that teaches `shell` to complete `commands`.
[[nodiscard]] std::string completion_script(Shell shell,
                                            std::span<const CompletedCommand> commands);

}  // namespace isoscale::config
