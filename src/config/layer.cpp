// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/layer.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/values.hpp"

namespace isoscale::config {
namespace {

/// Whether `text` means something to `option`; a value that a later layer overrides must, too.
void check_value(const RunOption& option, std::string_view text, const std::string& place) {
  Experiment experiment;
  RunConfig run;
  try {
    require_sane(text);
    option.apply(text, experiment, run);
  } catch (const base::UsageError& error) {
    throw base::UsageError(fmt::format("{}: {}", place, error.what()), error.where());
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(fmt::format("{}: {}", place, error.what()));
  }
}

}  // namespace

const Given* Choices::find(std::string_view option) const {
  const auto found = values.find(option);
  return found == values.end() ? nullptr : &found->second;
}

void give(Choices& choices, const RunOption& option, std::string_view text,
          const std::string& place) {
  const auto earlier = choices.values.find(option.name);
  if (option.arity == Arity::repeated_list && earlier != choices.values.end()) {
    const std::string all = fmt::format("{},{}", earlier->second.text, text);
    check_value(option, all, place);
    earlier->second.text = all;
    return;
  }
  check_value(option, text, place);
  if (option.arity == Arity::repeated) {
    const auto [key, value] = parse_assignment(text);
    give_workload_option(choices, key, value, place);
    return;
  }
  const auto [at, is_new] =
      choices.values.emplace(option.name, Given{.text = std::string{text}, .place = place});
  if (is_new) return;
  throw base::UsageError(fmt::format("{}: given twice, as {} and as {}; give it once", place,
                                     base::quoted(at->second.text), base::quoted(text)));
}

void give_workload_option(Choices& choices, const std::string& key, std::string_view value,
                          const std::string& place) {
  const bool is_new =
      choices.options.emplace(key, Given{.text = std::string{value}, .place = place}).second;
  if (is_new) return;
  throw base::UsageError(
      fmt::format("{}: {} is given twice; give each key once", place, base::quoted(key)));
}

}  // namespace isoscale::config
