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

/// Completion of command lines in shells. The words come from the commands and options that CLI11
/// knows, so no script has to be updated by hand.
namespace isoscale::config {

enum class Shell : std::uint8_t { bash, zsh, fish };
[[nodiscard]] std::string_view name(Shell shell);

/// The words and files that can complete one argument or one option's value. Both lists are empty
/// if only the user can know them, such as a number.
struct Candidates {
  std::vector<std::string> words;    ///< one that ends in = is only the beginning of a word
  std::vector<std::string> endings;  ///< of matching files: ".h5"; "" = any file
  bool between_commas = false;       ///< several words may be given, with commas between

  [[nodiscard]] bool empty() const { return words.empty() && endings.empty(); }
  bool operator==(const Candidates&) const = default;
};

struct CompletedOption {
  std::string flag;  ///< "--device"
  std::string help;
  std::string placeholder;  ///< of its value, as in --help; "" = a flag without value
  Candidates value;
};

struct CompletedCommand {
  std::string name;
  std::string help;
  std::vector<CompletedOption> options;
  std::vector<Candidates> arguments;  ///< by position; the last one may be repeated
};

/// Returns the candidates that the placeholder of a value in --help stands for: "auto|cuda|host"
/// are words, "FILE.h5" is a file, "NAME[,NAME...]" is a list. `names` are added to the words.
[[nodiscard]] Candidates candidates_of(std::string_view placeholder,
                                       std::vector<std::string> names);

/// Returns all commands of `app`. The first, with the name "", holds the program's own options.
[[nodiscard]] std::vector<CompletedCommand> completed_commands(
    const CLI::App& app, std::span<const workloads::Workload> known);

/// Returns a script that teaches `shell` to complete `commands`.
[[nodiscard]] std::string completion_script(Shell shell,
                                            std::span<const CompletedCommand> commands);

}  // namespace isoscale::config
