// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace isoscale::workloads {

/// Reports an option whose number does not fit the other options of the request. Each number that
/// the error suggests would fit them. If the message also says to leave an option out, the number
/// fits only without that option.
class NumberError : public base::UsageError {
 public:
  NumberError(const std::string& why, std::string key, std::vector<long long> suggested);
  [[nodiscard]] const std::string& why() const { return why_; }  ///< message without suggestions
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::vector<long long>& suggested() const { return suggested_; }

 private:
  std::string why_, key_;
  std::vector<long long> suggested_;
};

/// Returns the nearest numbers below and above `number` that are at least 1, at most `most_apart`
/// from it, and that `accepts` accepts; empty if there are none.
[[nodiscard]] std::vector<long long> nearest_accepted(long long number,
                                                      const std::function<bool(long long)>& accepts,
                                                      long long most_apart = 100'000);

using base::usage_error;

// Each workload has one table of its options, which is used by --help, `list options`, validation,
// the experiment file, the run file and the documentation.

/// The types of an option's value. list: one or several of the choices, separated by commas. text:
/// any other value, which the function given to option::parsed reads.
enum class OptionType : unsigned char { choice, integer, bytes, list, text };

struct OptionSpec {
  std::string_view key;
  OptionType type = OptionType::choice;
  std::string_view default_value{};            ///< "" = none, or computed as the help says
  std::string_view gpu_default{};              ///< default on GPUs; "" = default_value
  std::vector<std::string_view> choices = {};  ///< for a choice or a list
  /// The range in which a user may choose a number or size; maximum 0 = no limit. When a request is
  /// scaled to a mesh, a number such as its batch may leave this range.
  long long minimum = 0, maximum = 0;
  std::string_view help{};
  /// Stores a value in the member of the workload's typed options that belongs to this row. If
  /// `options` is null, only reads the value. Throws base::UsageError if it cannot be read. The
  /// functions of namespace option set this pointer.
  void (*store)(const OptionSpec& spec, std::string_view value, void* options) = nullptr;
};

/// The options that were given, by key. An option that is absent has its default.
using Options = std::map<std::string, std::string, std::less<>>;

/// Throws base::UsageError if `value` is not valid for `spec`. The message has the key and says why
/// the value is not valid.
void validate(const OptionSpec& spec, std::string_view value);
/// Throws base::UsageError for an invalid value, and for a key that `workload` does not have; the
/// message then suggests a similar key, if there is one.
void validate(std::string_view workload, std::span<const OptionSpec> table, const Options& given);
/// Returns the options for a device ("host", "cuda"). On a GPU, an option that is not given is set
/// to its default for GPUs, if it has one.
[[nodiscard]] Options with_defaults_of(std::string_view device, std::span<const OptionSpec> table,
                                       Options given);
/// Returns the values that a key accepts, as text: "on|off", "a whole number of at least 1", "a
/// size in bytes, such as 25MiB".
[[nodiscard]] std::string accepted(const OptionSpec& spec);

/// Returns the row of a key. Throws std::logic_error if the table lacks it.
[[nodiscard]] const OptionSpec& find_option(std::span<const OptionSpec> table,
                                            std::string_view key);
/// Returns the value of an option, or its default if it is not given; "" if it has neither.
[[nodiscard]] std::string_view value_in(const Options& given, const OptionSpec& spec);
/// Returns value_in() of the row of a key. Throws std::logic_error if the table lacks the key.
[[nodiscard]] std::string option_text(std::span<const OptionSpec> table, const Options& given,
                                      std::string_view key);
/// Returns the values of all options in the table that are given or have a default, by key.
[[nodiscard]] std::map<std::string, std::string> all_options(std::span<const OptionSpec> table,
                                                             const Options& given);

/// Returns the typed options of a workload. For each row of its table they have the given value or,
/// if none is given, the default. A member keeps its initial value if its option is not given and
/// has no default. Throws base::UsageError for a value that cannot be read.
template <class Typed>
[[nodiscard]] Typed typed_options(std::span<const OptionSpec> table, const Options& given) {
  Typed result;
  for (const OptionSpec& spec : table) {
    const std::string_view value = value_in(given, spec);
    if (!value.empty()) spec.store(spec, value, &result);
  }
  return result;
}

/// Returns the parts of a list such as "a,b,c". Throws base::UsageError with `key` if a part is
/// empty or occurs twice.
[[nodiscard]] std::vector<std::string> parse_list(std::string_view key, std::string_view text);

/// The sizes in a list, in bytes, ascending and without repetitions.
struct Sizes {
  std::string text{};  ///< the list as it was given, for messages
  std::vector<std::uint64_t> bytes{};
};
/// Reads a list of sizes in bytes, such as "8,64KiB,1..1MiB". A range (1..1MiB) stands for its
/// first size and for all sizes up to its last that result when the first is doubled again and
/// again. A number from 2 to 1024 after an asterisk (8..1GiB*4) is the factor to use instead of 2.
/// Throws base::UsageError, which names `key`, for an invalid list.
[[nodiscard]] Sizes parse_sizes(std::string_view key, std::string_view text);

/// The functions of this namespace make the rows of option tables. Their template argument is the
/// member of the workload's typed options in which a value is stored. Except in parsed(), the
/// member's type says how the text of the value is read. An enumeration has its enumerators in the
/// order of the choices, and a bool is true for "on". A number is read from the text; the text of a
/// size may have a unit. A vector gets the parts of a list, and a string gets the text itself.
namespace option {

/// The range of a number; maximum 0 = no limit.
struct Range {
  long long minimum = 0, maximum = 0;
};

/// number_of() returns the number in a value, in bytes for a size, without checking the option's
/// range. place_of() returns the index of a value among the option's choices. Both throw
/// base::UsageError for other text.
[[nodiscard]] std::uint64_t number_of(const OptionSpec& spec, std::string_view value);
[[nodiscard]] std::size_t place_of(const OptionSpec& spec, std::string_view value);

template <class Value>
[[nodiscard]] Value read(const OptionSpec& spec, std::string_view text) {
  const auto place = [&] { return spec.choices.empty() ? 0 : place_of(spec, text); };
  if constexpr (std::is_same_v<Value, std::string>) {
    static_cast<void>(place());
    return std::string{text};
  } else if constexpr (requires(Value values) { values.front(); }) {
    Value values;
    for (const std::string& part : parse_list(spec.key, text)) {
      values.push_back(read<typename Value::value_type>(spec, part));
    }
    return values;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return spec.choices[place()] == "on";
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>(place());
  } else {
    static_cast<void>(place());
    return static_cast<Value>(number_of(spec, text));
  }
}

template <class Typed, class Value>
Typed owner_of(Value Typed::*member);
template <class Typed, class Value>
Value value_of(Value Typed::*member);

template <auto member, class Value>
void put(Value value, void* options) {
  if (options == nullptr) return;
  static_cast<decltype(owner_of(member))*>(options)->*member = std::move(value);
}

template <auto member>
[[nodiscard]] OptionSpec row(OptionSpec spec) {
  spec.store = [](const OptionSpec& self, std::string_view text, void* options) {
    put<member>(read<decltype(value_of(member))>(self, text), options);
  };
  return spec;
}

template <auto member>
[[nodiscard]] OptionSpec choice(std::string_view key, std::string_view default_value,
                                const std::vector<std::string_view>& choices,
                                std::string_view help) {
  return row<member>(
      {.key = key, .default_value = default_value, .choices = choices, .help = help});
}

template <auto member>
[[nodiscard]] OptionSpec toggle(std::string_view key, std::string_view default_value,
                                std::string_view help) {
  return choice<member>(key, default_value, {"on", "off"}, help);
}

template <auto member>
[[nodiscard]] OptionSpec list(std::string_view key, std::string_view default_value,
                              const std::vector<std::string_view>& choices, std::string_view help,
                              std::string_view gpu_default = {}) {
  return row<member>({.key = key,
                      .type = OptionType::list,
                      .default_value = default_value,
                      .gpu_default = gpu_default,
                      .choices = choices,
                      .help = help});
}

template <auto member>
[[nodiscard]] OptionSpec integer(std::string_view key, std::string_view default_value, Range range,
                                 std::string_view help, std::string_view gpu_default = {}) {
  return row<member>({.key = key,
                      .type = OptionType::integer,
                      .default_value = default_value,
                      .gpu_default = gpu_default,
                      .minimum = range.minimum,
                      .maximum = range.maximum,
                      .help = help});
}

template <auto member>
[[nodiscard]] OptionSpec bytes(std::string_view key, std::string_view default_value, Range range,
                               std::string_view help, std::string_view gpu_default = {}) {
  OptionSpec spec = integer<member>(key, default_value, range, help, gpu_default);
  spec.type = OptionType::bytes;
  return spec;
}

/// Makes the row of an option whose value is read by the function parse(key, text). That function
/// must throw base::UsageError for a text that is not valid.
template <auto member, auto parse>
[[nodiscard]] OptionSpec parsed(std::string_view key, std::string_view default_value,
                                std::string_view help, std::string_view gpu_default = {}) {
  OptionSpec spec{.key = key,
                  .type = OptionType::text,
                  .default_value = default_value,
                  .gpu_default = gpu_default,
                  .help = help};
  spec.store = [](const OptionSpec& self, std::string_view text, void* options) {
    put<member>(parse(self.key, text), options);
  };
  return spec;
}

}  // namespace option

}  // namespace isoscale::workloads
