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

/// Returns the value with which a function on files reports that it failed.
template <class Result>
constexpr Result none() {
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return -1;
  }
}

/// A function of files that does nothing where it fails.
template <auto Function, class... Arguments>
auto file(const char* name, const void* address, Arguments... arguments) {
  using Result = decltype(Function(arguments...));
  const std::optional<int> error = file_error<Function>(name, address);
  if (!error) return real<Function>(name, arguments...);
  errno = *error;
  return none<Result>();
}

/// A function of files that lets go of something, also where it fails.
template <auto Function, class... Arguments>
auto file_release(const char* name, const void* address, Arguments... arguments) {
  const std::optional<int> error = file_error<Function>(name, address);
  const auto result = real<Function>(name, arguments...);
  if (!error) return result;
  errno = *error;
  return none<decltype(Function(arguments...))>();
}

}  // namespace isoscale::fault

/// SEAM_n(CALL, RESULT, NAME, TYPE...) defines the function NAME of n parameters by a macro CALL.
#define SEAM_0(CALL, RESULT, NAME) \
  RESULT NAME() { return CALL(NAME); }
#define SEAM_1(CALL, RESULT, NAME, A) \
  RESULT NAME(A a) { return CALL(NAME, a); }
#define SEAM_2(CALL, RESULT, NAME, A, B) \
  RESULT NAME(A a, B b) { return CALL(NAME, a, b); }
#define SEAM_3(CALL, RESULT, NAME, A, B, C) \
  RESULT NAME(A a, B b, C c) { return CALL(NAME, a, b, c); }
#define SEAM_4(CALL, RESULT, NAME, A, B, C, D) \
  RESULT NAME(A a, B b, C c, D d) { return CALL(NAME, a, b, c, d); }
#define SEAM_5(CALL, RESULT, NAME, A, B, C, D, E) \
  RESULT NAME(A a, B b, C c, D d, E e) { return CALL(NAME, a, b, c, d, e); }
#define SEAM_6(CALL, RESULT, NAME, A, B, C, D, E, F) \
  RESULT NAME(A a, B b, C c, D d, E e, F f) { return CALL(NAME, a, b, c, d, e, f); }
#define SEAM_7(CALL, RESULT, NAME, A, B, C, D, E, F, G) \
  RESULT NAME(A a, B b, C c, D d, E e, F f, G g) { return CALL(NAME, a, b, c, d, e, f, g); }
#define SEAM_8(CALL, RESULT, NAME, A, B, C, D, E, F, G, H) \
  RESULT NAME(A a, B b, C c, D d, E e, F f, G g, H h) { return CALL(NAME, a, b, c, d, e, f, g, h); }
#define SEAM_9(CALL, RESULT, NAME, A, B, C, D, E, F, G, H, I) \
  RESULT NAME(A a, B b, C c, D d, E e, F f, G g, H h, I i) {  \
    return CALL(NAME, a, b, c, d, e, f, g, h, i);             \
  }
