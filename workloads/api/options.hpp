// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::workloads {

// Each workload has one table of its options. It feeds --help, `list options`, validation, the
// experiment file, the run file and the documentation.

/// list: some of the choices, separated by commas. text: a value that the workload checks when a
/// point is planned.
enum class OptionType : unsigned char { choice, integer, bytes, list, text };

struct OptionSpec {
  std::string_view key;
  OptionType type = OptionType::choice;
  std::string_view default_value{};            ///< "" = derived, as the help says
  std::string_view gpu_default{};              ///< default on GPUs; "" = the same
  std::vector<std::string_view> choices = {};  ///< for a choice or a list
  long long minimum = 0, maximum = 0;          ///< for integers and bytes; maximum 0 = no limit
  std::string_view help{};
};

/// Options as given: key -> text. An option that is absent has its default.
using Options = std::map<std::string, std::string, std::less<>>;

/// Throws base::UsageError if `value` is not valid for `spec`; it names the key, the value and what
/// would be accepted.
void validate(const OptionSpec& spec, std::string_view value);
/// Throws base::UsageError for a key that `workload` does not know (with the nearest) and for an
/// invalid value.
void validate(std::string_view workload, std::span<const OptionSpec> table, const Options& given);
/// Returns the options for a device ("host", "cuda"): on a GPU, an option that is not given and has
/// its own default there is set to it.
[[nodiscard]] Options with_defaults_of(std::string_view device, std::span<const OptionSpec> table,
                                       Options given);
/// Returns the values that a key accepts, as text: "on|off", "a whole number of at least 1", "a
/// size, 64MiB".
[[nodiscard]] std::string accepted(const OptionSpec& spec);

/// Gives typed access to options by their table. The values have been validated.
class OptionReader {
 public:
  OptionReader(std::span<const OptionSpec> table, const Options& given);
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] bool is(std::string_view key, std::string_view value) const;
  [[nodiscard]] bool has(std::string_view key) const;  ///< given, or has a default
  [[nodiscard]] long long integer(std::string_view key) const;
  [[nodiscard]] unsigned long long bytes(std::string_view key) const;

 private:
  std::span<const OptionSpec> table_;
  const Options& given_;
};

// These functions read lists in the options of micro-benchmarks.

/// Returns the parts of "a,b,c". Throws base::UsageError that names `key` if a part is empty or
/// appears twice.
[[nodiscard]] std::vector<std::string> parse_list(std::string_view key, std::string_view text);

/// Returns sizes in bytes, ascending, each once: "8,64KiB,1..1MiB", where a range doubles, or
/// "8..1GiB*4", where it grows by a factor of at least 2. Throws base::UsageError that names `key`.
[[nodiscard]] std::vector<std::uint64_t> parse_sizes(std::string_view key, std::string_view text);

}  // namespace isoscale::workloads
