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

// Each workload has one table of its options, which is used by --help, `list options`, validation,
// the experiment file, the run file and the documentation.

/// list: several of the choices, with commas between. text: any value; the workload checks it when
/// a point is planned.
enum class OptionType : unsigned char { choice, integer, bytes, list, text };

struct OptionSpec {
  std::string_view key;
  OptionType type = OptionType::choice;
  std::string_view default_value{};            ///< "" = computed, as the help says
  std::string_view gpu_default{};              ///< default on GPUs; "" = default_value
  std::vector<std::string_view> choices = {};  ///< for a choice or a list
  long long minimum = 0, maximum = 0;          ///< of integers and bytes; maximum 0 = no limit
  std::string_view help{};
};

/// The options that were given, by key. An option that is absent has its default.
using Options = std::map<std::string, std::string, std::less<>>;

/// Throws base::UsageError if `value` is not valid for `spec`. The message has the key, the value
/// and the values that are accepted.
void validate(const OptionSpec& spec, std::string_view value);
/// Throws base::UsageError for a key that `workload` does not have (with the nearest one), and for
/// an invalid value.
void validate(std::string_view workload, std::span<const OptionSpec> table, const Options& given);
/// Returns the options for a device ("host", "cuda"). On a GPU, an option that is not given is set
/// to its default for GPUs, if it has one.
[[nodiscard]] Options with_defaults_of(std::string_view device, std::span<const OptionSpec> table,
                                       Options given);
/// Returns the values that a key accepts, as text: "on|off", "a whole number of at least 1", "a
/// size, 64MiB".
[[nodiscard]] std::string accepted(const OptionSpec& spec);

/// Reads the values of options, which must have been validated; an option that is not given has the
/// default of its table.
class OptionReader {
 public:
  OptionReader(std::span<const OptionSpec> table, const Options& given);
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] bool is(std::string_view key, std::string_view value) const;
  [[nodiscard]] bool has(std::string_view key) const;  ///< the option is given or has a default
  [[nodiscard]] long long integer(std::string_view key) const;
  [[nodiscard]] unsigned long long bytes(std::string_view key) const;

 private:
  std::span<const OptionSpec> table_;
  const Options& given_;
};

// The functions below read options of micro-benchmarks that are lists.

/// Returns the parts of a list such as "a,b,c". Throws base::UsageError with `key` if a part is
/// empty or occurs twice.
[[nodiscard]] std::vector<std::string> parse_list(std::string_view key, std::string_view text);

/// Returns the sizes in a list, in bytes, ascending and without repetitions. "8,64KiB,1..1MiB" has
/// a range whose sizes double; the sizes of "8..1GiB*4" grow by the given factor, which is at least
/// 2. Throws base::UsageError with `key`.
[[nodiscard]] std::vector<std::uint64_t> parse_sizes(std::string_view key, std::string_view text);

}  // namespace isoscale::workloads
