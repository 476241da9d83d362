// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// Sizes, times, shares, meshes and lists, as they are typed: a text on each line.
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "settings/option_values.hpp"
#include "tests/fuzz/target.hpp"
#include "units/quantity_text.hpp"

namespace {

using isoscale::fuzz::must;
namespace units = isoscale::units;
namespace settings = isoscale::settings;

/// Parsers may throw one thing: an error that holds a sentence.
template <class Parse>
void try_it(Parse&& parse) {
  try {
    parse();
  } catch (const std::invalid_argument& error) {
    must(*error.what() != '\0', "a refusal has a reason");
  } catch (const isoscale::base::UsageError& error) {
    must(*error.what() != '\0', "a refusal has a reason");
  }
}

void try_line(std::string_view text) {
  try_it([&] {
    const units::Bytes bytes = units::parse_bytes(text);
    must(bytes.value() < std::uint64_t{1} << 63U, "sizes are below 2^63");
    must(!units::format(bytes).empty(), "a size can be said");
  });
  try_it([&] {
    const units::Seconds time = units::parse_seconds(text);
    must(std::isfinite(time.value()) && time.value() >= 0, "times are finite");
    must(!units::format(time).empty(), "a time can be said");
  });
  try_it([&] { must(std::isfinite(units::parse_ratio(text)), "ratios are finite"); });
  try_it([&] {
    const double share = settings::parse_share(text);
    must(share > 0 && share < 1, "shares are between 0 and 1");
  });
  try_it([&] { must(settings::parse_time_limit(text).value() > 0, "time limits are above 0"); });
  try_it([&] { (void)isoscale::mesh::to_text(settings::parse_mesh(text)); });
  try_it([&] {
    int last = 0;
    for (const int count : settings::parse_rank_counts(text)) {
      must(count > last, "rank counts ascend");
      last = count;
    }
  });
  try_it([&] { must(!settings::parse_names(text).empty(), "a list has a name"); });
  try_it([&] { must(!settings::parse_assignment(text).first.empty(), "a key is not empty"); });
  try_it([&] { (void)settings::parse_paths(text); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  std::string_view rest{reinterpret_cast<const char*>(data), size};                  // NOLINT
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    try_line(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return 0;
}
