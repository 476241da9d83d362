// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <hdf5.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "results/records/stored_values.hpp"

/// Wraps HDF5 and checks the result of every call; of the program's files, only this header
/// includes <hdf5.h>. The wrapper is not thread-safe: HDF5 must be used from one thread.
namespace isoscale::results::hdf5 {

/// An error with HDF5's own error stack as text, outermost call first.
class Hdf5Error : public base::Error {
 public:
  using Error::Error;
};

/// Throws Hdf5Error if `code`, the result of an HDF5 call, means failure.
hid_t check(hid_t code, std::source_location where = std::source_location::current());
int check(herr_t code, std::source_location where = std::source_location::current());

/// Returns the size in bytes of an element of this type. Throws Hdf5Error if HDF5 gives no size.
[[nodiscard]] std::size_t size_of_type(
    hid_t type, std::source_location where = std::source_location::current());

/// Warns on standard error, with HDF5's reason, that a handle could not be closed.
void warn_close_failed() noexcept;

template <herr_t (*Close)(hid_t)>
struct IdTraits {
  using type = hid_t;
  static constexpr hid_t null() { return H5I_INVALID_HID; }
  static void free(hid_t id) noexcept {
    if (Close(id) < 0) warn_close_failed();
  }
};
using FileId = base::Handle<IdTraits<&H5Fclose>>;
using GroupId = base::Handle<IdTraits<&H5Gclose>>;
using DatasetId = base::Handle<IdTraits<&H5Dclose>>;
using SpaceId = base::Handle<IdTraits<&H5Sclose>>;
using TypeId = base::Handle<IdTraits<&H5Tclose>>;
using AttributeId = base::Handle<IdTraits<&H5Aclose>>;
using PropertyId = base::Handle<IdTraits<&H5Pclose>>;

/// Returns a type for UTF-8 text, which h5py reads as str. The text has `length` bytes, padded with
/// zeros, or any length if `length` is H5T_VARIABLE.
[[nodiscard]] TypeId text_type(std::size_t length);

/// The HDF5 types of a number in the file and in memory. `kind` is the class (integer, floating
/// point or enumeration) that a stored value must have to be read as this number.
struct Types {
  hid_t file, memory;
  H5T_class_t kind;
  TypeId made{};  ///< owns the types unless they are HDF5's own
};
inline Types types_of(double) { return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, H5T_FLOAT}; }
inline Types types_of(std::int64_t) { return {H5T_STD_I64LE, H5T_NATIVE_INT64, H5T_INTEGER}; }
inline Types types_of(std::int32_t) { return {H5T_STD_I32LE, H5T_NATIVE_INT32, H5T_INTEGER}; }
inline Types types_of(std::uint64_t) { return {H5T_STD_U64LE, H5T_NATIVE_UINT64, H5T_INTEGER}; }
inline Types types_of(std::uint32_t) { return {H5T_STD_U32LE, H5T_NATIVE_UINT32, H5T_INTEGER}; }
inline Types types_of(std::uint8_t) { return {H5T_STD_U8LE, H5T_NATIVE_UINT8, H5T_INTEGER}; }
/// Returns h5py's representation of a boolean: an enumeration of one byte that it reads as bool.
Types types_of(bool);  // NOLINT: the value itself is boolean

/// The types of numbers that a dataset can hold. A dataset can also hold text.
template <class T>
concept Number = std::same_as<T, double> || std::same_as<T, std::int64_t> ||
                 std::same_as<T, std::int32_t> || std::same_as<T, std::uint64_t> ||
                 std::same_as<T, std::uint32_t> || std::same_as<T, std::uint8_t>;

/// A group of an open file. Soft, external and user-defined links are ignored, so that a file
/// cannot lead a reader to other files.
class Group {
 public:
  explicit Group(GroupId id) : id_(std::move(id)) {}

  Group create_group(const std::string& name);
  [[nodiscard]] Group open_group(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;  ///< names of its members, ascending
  void remove(const std::string& name);

  // The next functions access attributes. Setting one replaces its old value. Text is UTF-8 of
  // variable length, which h5py returns as a str; bytes that are not UTF-8 are replaced by U+FFFD.
  [[nodiscard]] bool has_attribute(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> attribute_names() const;
  void set(const std::string& name, std::string_view text);
  template <class T>
    requires std::same_as<T, double> || std::same_as<T, std::int64_t> ||
             std::same_as<T, std::uint64_t> || std::same_as<T, bool>
  void set(const std::string& name, T value) {
    set_number(name, types_of(value), &value);
  }
  [[nodiscard]] std::string text(const std::string& name) const;
  template <class T>
  [[nodiscard]] T get(const std::string& name) const {
    std::conditional_t<std::same_as<T, bool>, std::int8_t, T> number{};
    get_number(name, types_of(T{}), &number);
    if constexpr (std::same_as<T, bool>) return number == 1;
    return static_cast<T>(number);
  }

  /// Writes a dataset of numbers or texts in row-major order; without dimensions it is a single
  /// value. Datasets of 64 KiB or more are chunked, and are compressed and have checksums if this
  /// HDF5 can do so. `names`, the meanings of the numbers 0, 1, ..., become the attribute `values`.
  template <Number T>
  void write(const std::string& name, Dimensions dimensions, std::span<const T> values,
             const About& about, std::span<const std::string> names = {}) {
    write_numbers(name, types_of(T{}), dimensions, values.data(), about, names);
  }
  void write(const std::string& name, Dimensions dimensions, std::span<const std::string> texts,
             const About& about);

  // Reading of datasets allocates no more memory than the file's size can justify, and converts
  // only between widths of the same kind of number.
  template <class T>
  [[nodiscard]] std::vector<T> read(const std::string& name) const {
    std::vector<T> values;
    if constexpr (std::same_as<T, std::string>) {
      values = read_texts(name, 1);
    } else {
      read_numbers(name, types_of(T{}), 1, [&](std::span<const hsize_t> dims) {
        values.resize(dims[0]);
        return values.data();
      });
    }
    return values;
  }
  [[nodiscard]] std::vector<std::vector<double>> read_rows(const std::string& name) const;
  [[nodiscard]] std::string read_text(const std::string& name) const {
    return read_texts(name, 0).front();
  }
  /// Returns the dataset's attribute `values`: the meanings of the numbers 0, 1, ... in it.
  [[nodiscard]] std::vector<std::string> names_of_codes(const std::string& name) const;

 private:
  void set_number(const std::string& name, const Types& types, const void* value);
  void get_number(const std::string& name, const Types& types, void* value) const;
  void write_numbers(const std::string& name, const Types& types, Dimensions dimensions,
                     const void* values, const About& about, std::span<const std::string> names);
  /// Reads a dataset with `rank` dimensions into the memory that `room_for` returns for them.
  void read_numbers(const std::string& name, const Types& types, std::size_t rank,
                    const std::function<void*(std::span<const hsize_t>)>& room_for) const;
  [[nodiscard]] std::vector<std::string> read_texts(const std::string& name,
                                                    std::size_t rank) const;

  GroupId id_;
};

/// An open HDF5 file. File locking is off: file systems of clusters often lack it, and no file is
/// ever changed under its final name. HDF5's own messages are off, too.
class File {
 public:
  /// Creates a file, or replaces one, with room for the digest (file_digest.hpp) before its data.
  [[nodiscard]] static File create(const std::filesystem::path& path);
  [[nodiscard]] static File open_to_change(const std::filesystem::path& path);
  [[nodiscard]] static File open_to_read(const std::filesystem::path& path);
  /// True if the signature of HDF5 is at the beginning of the file or after 512 bytes, the size of
  /// a digest block (file_digest.hpp). Also true if the file has at least 8 bytes and begins with a
  /// digest block or a piece of one, since it may have been cut off there.
  [[nodiscard]] static bool has_signature(const std::filesystem::path& path);

  [[nodiscard]] Group root() const;
  /// Calls `change` with the root group, then writes everything and closes the file. Throws
  /// Hdf5Error on a failure, of which the destructor could only warn. No group may outlive
  /// `change`.
  template <class Change>
  void change_and_close(Change&& change) {
    {
      Group group = root();
      change(group);
    }
    close();
  }

 private:
  void close();
  explicit File(FileId id) : id_(std::move(id)) {}
  FileId id_;
};

}  // namespace isoscale::results::hdf5
