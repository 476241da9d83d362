// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <utility>

namespace isoscale::base {

/// Owns one C handle; move-only. `Traits` defines the handle's `type`, `null()`, and `free(type)
/// noexcept`, which may report a failure or ignore it. This is the project's only RAII template.
template <class Traits>
class Handle {
 public:
  using type = typename Traits::type;

  Handle() = default;
  explicit Handle(type value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  [[nodiscard]] type get() const { return value_; }
  [[nodiscard]] explicit operator bool() const { return value_ != Traits::null(); }
  [[nodiscard]] type release() { return std::exchange(value_, Traits::null()); }
  void reset(type value = Traits::null()) noexcept {
    const type old = std::exchange(value_, value);
    if (old != Traits::null()) Traits::free(old);
  }

 private:
  type value_ = Traits::null();
};

/// The traits of a pointer handle whose null value is nullptr and which the function `release`
/// frees. The return value of `release` is ignored.
template <class Pointer, auto release>
struct GivenBackBy {
  using type = Pointer;
  static constexpr type null() { return nullptr; }
  static void free(type handle) noexcept { static_cast<void>(release(handle)); }
};

/// The traits of a file descriptor: an open file or one end of a pipe.
struct DescriptorTraits {
  using type = int;
  static constexpr type null() { return -1; }
  static void free(type descriptor) noexcept { static_cast<void>(close(descriptor)); }
};
using Descriptor = Handle<DescriptorTraits>;

}  // namespace isoscale::base
