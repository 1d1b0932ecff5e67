from .meteor import Meteor
