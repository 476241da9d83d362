// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <tuple>
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

/// Gives the result type and the parameter types of a function.
template <class R, class... A>
struct Signature {
  using Result = R;
  template <std::size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<A...>>;
};
/// Declared only: decltype of a call names the signature of `function`.
template <class R, class... A>
Signature<R, A...> signature_of(R (*function)(A...));

}  // namespace isoscale::fault

/// SEAM_n(CALL, NAME) defines the function NAME, which has n parameters, by a macro CALL.
#define SEAM_TYPE(NAME, I) decltype(isoscale::fault::signature_of(NAME))::Argument<I>
#define SEAM(CALL, NAME, PARAMETERS, ...)                                        \
  decltype(isoscale::fault::signature_of(NAME))::Result NAME(PARAMETERS(NAME)) { \
    return CALL(NAME __VA_OPT__(, ) __VA_ARGS__);                                \
  }
#define SEAM_PARAMETERS_0(NAME)
#define SEAM_PARAMETERS_1(NAME) SEAM_TYPE(NAME, 0) a
#define SEAM_PARAMETERS_2(NAME) SEAM_PARAMETERS_1(NAME), SEAM_TYPE(NAME, 1) b
#define SEAM_PARAMETERS_3(NAME) SEAM_PARAMETERS_2(NAME), SEAM_TYPE(NAME, 2) c
#define SEAM_PARAMETERS_4(NAME) SEAM_PARAMETERS_3(NAME), SEAM_TYPE(NAME, 3) d
#define SEAM_PARAMETERS_5(NAME) SEAM_PARAMETERS_4(NAME), SEAM_TYPE(NAME, 4) e
#define SEAM_PARAMETERS_6(NAME) SEAM_PARAMETERS_5(NAME), SEAM_TYPE(NAME, 5) f
#define SEAM_PARAMETERS_7(NAME) SEAM_PARAMETERS_6(NAME), SEAM_TYPE(NAME, 6) g
#define SEAM_PARAMETERS_8(NAME) SEAM_PARAMETERS_7(NAME), SEAM_TYPE(NAME, 7) h
#define SEAM_PARAMETERS_9(NAME) SEAM_PARAMETERS_8(NAME), SEAM_TYPE(NAME, 8) i
#define SEAM_0(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_0)
#define SEAM_1(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_1, a)
#define SEAM_2(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_2, a, b)
#define SEAM_3(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_3, a, b, c)
#define SEAM_4(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_4, a, b, c, d)
#define SEAM_5(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_5, a, b, c, d, e)
#define SEAM_6(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_6, a, b, c, d, e, f)
#define SEAM_7(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_7, a, b, c, d, e, f, g)
#define SEAM_8(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_8, a, b, c, d, e, f, g, h)
#define SEAM_9(CALL, NAME) SEAM(CALL, NAME, SEAM_PARAMETERS_9, a, b, c, d, e, f, g, h, i)

/// SEAMS(n, CALL, NAME...) defines all of these functions.
#define SEAMS(N, CALL, ...) SEAM_EXPAND(SEAM_FIRST(SEAM_##N, CALL, __VA_ARGS__))
#define SEAM_FIRST(SEAM, CALL, NAME, ...) \
  SEAM(CALL, NAME) __VA_OPT__(SEAM_OTHERS SEAM_PARENTHESES(SEAM, CALL, __VA_ARGS__))
#define SEAM_OTHERS() SEAM_FIRST
#define SEAM_PARENTHESES ()
/// Expands a list of at most 27 functions; a longer one does not compile.
#define SEAM_EXPAND(...) SEAM_EXPAND_3(SEAM_EXPAND_3(SEAM_EXPAND_3(__VA_ARGS__)))
#define SEAM_EXPAND_3(...) SEAM_EXPAND_2(SEAM_EXPAND_2(SEAM_EXPAND_2(__VA_ARGS__)))
#define SEAM_EXPAND_2(...) SEAM_EXPAND_1(SEAM_EXPAND_1(SEAM_EXPAND_1(__VA_ARGS__)))
#define SEAM_EXPAND_1(...) __VA_ARGS__
