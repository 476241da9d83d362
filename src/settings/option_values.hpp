// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mesh/mesh_request.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::settings {

// These functions read values of options from text. All throw base::UsageError or
// std::invalid_argument, with a sentence that begins with the refused value and says what is right.

/// Throws base::UsageError: "'TEXT' WHY".
[[noreturn]] void refuse_value(std::string_view text, std::string_view why);
/// Throws if a text cannot be a value of any option: it is empty, too long, or not plain text.
void require_sane(std::string_view text);

/// Reads a whole number from `least` to `most`.
[[nodiscard]] std::uint64_t parse_number(std::string_view text, std::uint64_t least,
                                         std::uint64_t most);
[[nodiscard]] int parse_int(std::string_view text, int least, int most);
/// Reads a comma-separated list of names without repetitions: "dp,tp".
[[nodiscard]] std::vector<std::string> parse_names(std::string_view text);
/// Reads a comma-separated list of rank counts without repetitions, "4,1,2", and returns it sorted.
/// `others` names other texts that the option takes, for the error message: "'all', or ".
[[nodiscard]] std::vector<int> parse_rank_counts(std::string_view text,
                                                 std::string_view others = "");
/// Reads a share above 0% and below 100%.
[[nodiscard]] double parse_share(std::string_view text);
/// Reads a time above 0 and of at most 1000 hours.
[[nodiscard]] units::Seconds parse_time_limit(std::string_view text);
[[nodiscard]] units::Seconds parse_timeout(std::string_view text);  ///< a time limit, or 0
[[nodiscard]] mesh::Request parse_mesh(std::string_view text);
/// Reads "KEY=VALUE".
[[nodiscard]] std::pair<std::string, std::string> parse_assignment(std::string_view text);
[[nodiscard]] std::filesystem::path parse_path(std::string_view text);
/// Reads a comma-separated list of paths, the run files of several launches: "a1.h5,a2.h5".
[[nodiscard]] std::vector<std::filesystem::path> parse_paths(std::string_view text);
/// Reads "true" or "false".
[[nodiscard]] bool parse_flag(std::string_view text);

/// Calls parse(text) if require_sane(text) does not throw. The message of an error from either
/// begins with `place`, "--model" or "exp.toml:3: model".
template <class Parse>
auto with_place(std::string_view place, std::string_view text, Parse parse) {
  try {
    require_sane(text);
    return parse(text);
  } catch (const base::UsageError& error) {
    throw base::usage_error("{}: {}", place, error.what());
  } catch (const std::invalid_argument& error) {
    throw base::usage_error("{}: {}", place, error.what());
  }
}

/// Returns the one of `choices` whose name is `text`. Throws base::UsageError if there is none.
template <class Enum>
[[nodiscard]] Enum parse_choice(std::string_view text, std::initializer_list<Enum> choices) {
  std::vector<std::string_view> names;
  for (const Enum choice : choices) {
    if (name(choice) == text) return choice;
    names.push_back(name(choice));
  }
  throw base::usage_error("{} is not one of {}", base::quoted(text), fmt::join(names, ", "));
}

/// Returns the workload of this name. If there is none, throws base::UsageError "PLACE: ..." with
/// the nearest name and all names.
[[nodiscard]] const workloads::Workload& find_workload(std::string_view name,
                                                       std::string_view place);

}  // namespace isoscale::settings
