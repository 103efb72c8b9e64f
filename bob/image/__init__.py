"""Guest images. A recipe is a folder in guest-images/ that says how to build an image. From the recipe, bob builds a
kernel, an initramfs and a root file system, and keeps them in the cache."""

from bob.image.build import build, ensure, image_names, named
from bob.image.cache import Image, find, images_folder, installed, remove
from bob.image.needs import check_kernel, check_subject
from bob.image.recipe import Recipe, load_recipe, recipe_names
from bob.image.unpack import unpacked
from bob.image.world import ensure_world

__all__ = [
    "Image", "Recipe", "build", "check_kernel", "check_subject", "ensure", "ensure_world", "find", "image_names",
    "images_folder", "installed", "load_recipe", "named", "recipe_names", "remove", "unpacked",
]  # fmt: skip
