// libthimble.so, opened at run time.
#pragma once

#include "allocator/thimble.h"

struct Api {
  static constexpr char kLibrary[] = "allocator/libthimble.so";

  // Opens the library; stops the program if it cannot.
  static Api Open();

  void Close();

  void* library = nullptr;
  decltype(thimble_last_error)* last_error = nullptr;
  decltype(thimble_create)* create = nullptr;
  decltype(thimble_destroy)* destroy = nullptr;
  decltype(thimble_allocate)* allocate = nullptr;
  decltype(thimble_free)* free = nullptr;
  decltype(thimble_pin)* pin = nullptr;
  decltype(thimble_unpin)* unpin = nullptr;
  decltype(thimble_get_stats)* get_stats = nullptr;
  decltype(thimble_trim)* trim = nullptr;
};
