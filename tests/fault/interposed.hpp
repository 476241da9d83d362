// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <type_traits>

/// The functions of the seam are made of these parts.
namespace isoscale::fault {

/// Who calls a function of files.
enum class Caller : std::size_t { product, hdf5, standard_library };
inline constexpr std::size_t callers = 3;
/// By the address that the call returns to; none for those that are left alone.
[[nodiscard]] std::optional<Caller> caller_at(const void* address);

/// One function, as one caller calls it.
struct Entry;
[[nodiscard]] Entry& entry_of(const char* function, Caller caller);
/// Counts a call. The error that it ends with, if it is to fail.
[[nodiscard]] std::optional<int> failing_now(Entry& entry);

/// The next definition of the function after this one.
template <auto Function, class... Arguments>
auto real(const char* name, Arguments... arguments) {
  static const auto next = reinterpret_cast<decltype(Function)>(dlsym(RTLD_NEXT, name));
  return next(arguments...);
}

/// A function that does nothing where it fails.
template <auto Function, class Result, class... Arguments>
Result instead(const char* name, Result result, Arguments... arguments) {
  static Entry& entry = entry_of(name, Caller::product);
  if (failing_now(entry)) return result;
  return real<Function>(name, arguments...);
}

/// A function that lets go of something, also where it fails.
template <auto Function, class Result, class... Arguments>
Result after(const char* name, Result result, Arguments... arguments) {
  static Entry& entry = entry_of(name, Caller::product);
  const bool fails = failing_now(entry).has_value();
  const Result actual = real<Function>(name, arguments...);
  return fails ? result : actual;
}

/// The error with which this call of a function of files fails, if it does. `Function` keeps the
/// entries of functions apart.
template <auto Function>
std::optional<int> file_error(const char* name, const void* address) {
  static std::array<Entry*, callers> entries{};
  const std::optional<Caller> caller = caller_at(address);
  if (!caller) return std::nullopt;
  Entry*& entry = entries[static_cast<std::size_t>(*caller)];
  if (entry == nullptr) entry = &entry_of(name, *caller);
  return failing_now(*entry);
}

/// A function of files that does nothing where it fails, sets errno and returns `result`.
template <auto Function, class Result, class... Arguments>
Result file(const char* name, const void* address, Result result, Arguments... arguments) {
  if (const std::optional<int> error = file_error<Function>(name, address)) {
    errno = *error;
    return result;
  }
  return real<Function>(name, arguments...);
}

}  // namespace isoscale::fault
